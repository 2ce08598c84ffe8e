// Package usagepatch builds JSON Patches of the field deviceUsage of Instances.
//
// Always: a change of a slot tests that the slot still is as it was read, so a
// patch never overwrites a change that its author has not seen.
// Never: an operation on another field.
package usagepatch
