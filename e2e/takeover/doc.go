// Package takeover tests, on a real cluster with two nodes, that this project's agents
// and controller take over what the original Akri has made, while its brokers run, and
// that Akri's agents can work next to ours and after them.
//
// The cluster has no program of Akri. The brokers are started by our agents and
// controller, which then stop. Akri then writes the same objects as its agents and its
// controller do: the fields, the field managers, the finalizers (akri_test.go). What
// Akri's agents write next to ours are the same server-side applies.
//
// In TestPage, a chart installs what Akri's chart does, with programs that only wait, and
// every command of docs/migrate-from-akri.md is run as printed.
//
// Reading order: takeover_test.go is the story, akri_test.go plays Akri, page_test.go runs
// the page, main_test.go has the cluster.
//
// Never: an apply of Akri that is forced. A conflict is what Akri would get.
package takeover
