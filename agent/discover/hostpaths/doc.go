// Package hostpaths decides which files and directories of the node a discovery
// handler may give to containers. The kubelet adds them to containers of any
// namespace, and Pod security standards do not apply to them, so the operator permits
// directories by handler.
//
// Always: a path is judged by its text, cleaned; a path with ".." is refused. Never: a
// look at the file system, so symbolic links below a permitted directory are followed
// by the container runtime.
package hostpaths
