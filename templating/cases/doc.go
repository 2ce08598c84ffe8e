// Package cases renders a Configuration for Instances and compares the result with
// the expected one, so that examples are tests.
//
// A case is a directory:
//
//	configuration.yaml   one Configuration
//	instances.yaml       Instances, as documents; without it two samples are used
//	expected.yaml        what Render prints; or the mistakes, as comments
//
// [Load], [Input.Objects] and [Input.Render] work on a Configuration and Instances;
// [Find] and [Run] work on directories.
//
// Always: the same files give the same result.
//
// Never: a write. Files are read from an fs.FS.
package cases
