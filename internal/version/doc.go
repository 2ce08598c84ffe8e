// Package version is the version of this program, for --version, logs and metrics.
//
// Always: the version is valid according to Semantic Versioning, with a leading v.
// Released programs have the version of their tag; others have that of the tag before,
// followed by the number of commits since then, as git describe prints it.
package version
