// Package attacks tests what Akri withstands: each test is an attack by a user, an
// agent or a discovery handler that has only the rights that the test names, on a
// real cluster with the webhook and the policies installed.
//
// Attacks on limits, on faults of the API server and on the policies alone are in the tests of
// packages webhook, api/v0 and controller, which have a real API server, too.
//
// Reading order: main_test.go starts the cluster, client_test.go and
// manifest_test.go are the tools, user_test.go makes the attackers; each other file
// covers one class of attacks. explore_test.go tries what no test names: random
// hostile Configurations by a user who may write nothing else.
//
// Always: next to an attack, its control shows that the same thing is refused or
// repaired in the plain case, or works for somebody who may do it. Never: an attack
// that passes because nothing has happened yet; tests wait until the controller has
// observed the generation in question.
package attacks
