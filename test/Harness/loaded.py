"""What processes have mapped of a bundle's weights. A rank maps its own once it has met all others."""
import contextlib
import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def pages(name, offset, count):
    """Those of so many bytes of a file."""
    return {(name, page) for page in range(offset // _PAGE, -(-(offset + count) // _PAGE))}


def pages_of_process(bundle, pid):
    """Of the files of weights, those that the process has mapped; none if it has ended."""
    found, weights = set(), os.path.realpath(os.path.join(bundle.folder, "weights"))
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
        for addresses, _, offset, _, _, *path in map(str.split, file):
            if path and os.path.dirname(path[0]) == weights:
                begin, end = (int(address, 16) for address in addresses.split("-"))
                found |= pages(os.path.basename(path[0]), int(offset, 16), end - begin)
    return found


def have_loaded(bundle, processes):
    """Whether all ranks of the bundle are among the processes and have begun to map."""
    return (len(processes) == bundle.manifest["topology"]["ranks"]
            and all(pages_of_process(bundle, pid) for pid in processes))
