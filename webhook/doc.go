// Package webhook decides whether a Configuration may be stored: before it is,
// its author hears what would go wrong.
//
// It is asked on create and update of Configurations, and never about Instances,
// since agents must be able to write while nobody is here to answer. Read
// chain.go: the checks in their order, one in each file. A check gathers what it
// needs, decides, and answers with [Finding] values; all of a stage's findings
// reach the author at once.
//
// Always: what nobody can know yet (a kind that is to be installed, a quota, a
// third party that does not answer) admits with a warning; an answer comes within
// the API server's patience; a panic is a denial that says so.
//
// Never: a write. Every request that could be one is made a dry run on its way
// (guard.go). Never either: an object that the API server answered with, or what
// it says of a Secret, in a message.
package webhook
