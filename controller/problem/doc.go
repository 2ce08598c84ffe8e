// Package problem turns errors into what conditions and denials say. It never
// talks to anybody.
package problem
