// Package details parses the discoveryDetails of the handler udev: rules in udev's
// syntax, and options.
//
// The reading order is details.go (the YAML), parse.go (the text of a rule), rule.go
// (what a rule means for a device), pattern.go (values).
//
// Always: an error names the rule, the column and the remedy. Matching takes time
// proportional to the length of the pattern times the length of the value. Never: an
// import of gRPC or a look at the machine; the admission webhook uses this package too.
package details
