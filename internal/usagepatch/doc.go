// Package usagepatch builds JSON Patches of the field deviceUsage of Instances.
//
// Always: a patch tests that each slot is unchanged since it was read, so it never
// overwrites a concurrent change.
// Never: an operation on another field.
package usagepatch
