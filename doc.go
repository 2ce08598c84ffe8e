// Package akri is the root of the repository. It holds no code, only the house
// rules, as tests: which directory may import which (imports_test.go), the shape of
// files and packages (repo_test.go), the words (prose_test.go), and the
// links and paths in the documentation (docs_test.go). CONTRIBUTING.md explains them.
//
// # Reading order
//
// Follow one device from its socket to its Service:
//
//   - [akri.sh/akri/discovery]: what a discovery handler is and how it is served
//   - [akri.sh/akri/api/v0]: Configuration and Instance, and the names that
//     agents, controller and users share
//   - [akri.sh/akri/agent]: one node. Its first half,
//     [akri.sh/akri/agent/discover], turns devices into Instances; its second
//     half, [akri.sh/akri/agent/serve], offers their slots to the kubelet
//   - [akri.sh/akri/templating]: turns templates and an Instance's properties into
//     objects, without a client or a clock
//   - [akri.sh/akri/controller]: one cluster. It plans which objects to create,
//     update and delete, and applies the plan
//   - [akri.sh/akri/webhook]: decides whether a Configuration may be stored
//   - the programs in cmd, which hold flags and wiring only
//
// docs/architecture.md follows the same order in more detail, and lists what to change
// when you add a template function, an admission check or a condition reason.
package akri
