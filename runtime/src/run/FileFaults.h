// A mapped file that becomes shorter, or whose disk fails, ends the process with the file's name.
#ifndef K2RT_RUN_FILEFAULTS_H
#define K2RT_RUN_FILEFAULTS_H

namespace k2c::runtime {

/// From now on SIGBUS prints one line that names the mapped file and ends the process with 3, as a failure at run time.
/// For programs of our own: a library leaves signals to its user.
void nameFileFaults();

} // namespace k2c::runtime

#endif
