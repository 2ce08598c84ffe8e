// Package garbage sets how much garbage the programs let accumulate, and how long they keep
// memory that they no longer use.
package garbage
