// Package view shows people what Configurations have led to, what they would lead
// to, and why something is not as it should be: the pages of kubectl akri.
//
// Each function prints what it is handed. [Conclude] is a list of rules, one for
// each thing that is known to go wrong with a device.
//
// Always: the same input gives the same page; values of Secrets are not shown.
// Never: a client, a clock.
package view
