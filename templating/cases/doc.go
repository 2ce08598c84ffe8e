// Package cases renders a Configuration for Instances and compares the result with
// what is expected: examples that are run and not only shown.
//
// A case is a folder:
//
//	configuration.yaml   one Configuration
//	instances.yaml       Instances, as documents; without it two samples are used
//	expected.yaml        what Render prints; or what is wrong, as comments
//
// [Load], [Input.Objects] and [Input.Render] serve whoever has a Configuration and
// Instances at hand; [Find] and [Run] go through folders. Files come from an fs.FS, and nothing
// is written.
package cases
