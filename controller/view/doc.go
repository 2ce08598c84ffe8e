// Package view shows people what Configurations have led to. It reads the
// records of api/v0 and nothing else: their statuses hold all it needs.
package view
