// Package slots tests, on two real nodes, who holds which slot of a device: while Pods
// are replaced, kubelets, agents and the API server fail, and people edit the record.
//
// What the tests compare:
//
//   - the record, deviceUsage, which the agents write;
//   - the truth, which is the environment of the containers' processes on this machine
//     (users_test.go): it needs no kubelet, no agent and no API server.
//
// All tests share one cluster. Each leaves it as it was.
package slots
