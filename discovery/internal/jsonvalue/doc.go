// Package jsonvalue reads values in the JSON of devices, at paths of gjson that
// details.CheckPath permits.
//
// Always: the memory for a value is that of its text, however many other values there are.
package jsonvalue
