// Package readywhen compiles and evaluates the conditions of the directive
// akri.sh/ready-when: CEL expressions over a live object, self.
//
// Always: a [Condition] is immutable and safe for concurrent use. The cost of an
// evaluation is bounded, in CEL's own units.
//
// Never: a change to the object; a clock.
package readywhen
