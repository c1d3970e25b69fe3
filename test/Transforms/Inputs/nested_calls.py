"""nested_calls.py COUNT [starts]: so many functions, each of which calls the next, and again within an exchange."""
import sys

count = int(sys.argv[1])
starts = len(sys.argv) > 2
for i in range(count if starts else 0):
    print(f"rt.collective @site{i} site {i} op all_to_all_rows axis ep members 2 row_bytes 64")
for i in range(count):
    call = f"  func.call @f{i + 1}() : () -> ()"
    print(f"func.func @f{i}() {{")
    print(call)
    if starts:
        print(f"  %p = rt.arena {64 * i} bytes 64")
        print(f"  rt.collective_start @site{i} source %p to %p result %p from %p")
        print(call)
        print(f"  rt.collective_wait @site{i}")
    print("  return")
    print("}")
print(f"func.func @f{count}() {{\n  return\n}}")
