// Package cases renders a Configuration for Instances and compares the result with
// the expected output. It turns examples into tests.
//
// A case is a directory:
//
//	configuration.yaml   one Configuration
//	instances.yaml       Instances, as documents; without it two samples are used
//	expected.yaml        the output of Render, or the mistakes as comments
//
// [Load], [Input.Objects] and [Input.Render] work on a Configuration and Instances;
// [Find] and [Run] work on directories.
//
// Always: the same files give the same result.
//
// Never: writes a file. Files are read from an fs.FS.
package cases
