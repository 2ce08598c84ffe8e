// Package handlertest tests discovery handlers against the contract of
// [discovery.Handler]:
//
//	func TestConformance(t *testing.T) {
//		handlertest.Run(t, cameras.Handler{}, handlertest.Case{
//			Details: "network: 10.0.0.0/24",
//			Invalid: []string{"net: 10.0.0.0/24", "network: x"},
//		})
//	}
//
// [Run] serves a handler as [discovery.Serve] does, and also finds goroutines that are
// left. [RunProgram] tests a program in any language, and [RunEndpoint] one that is
// already running. [Open] calls a handler, so that a test can follow its lists, and [Validate]
// checks what the author of discoveryDetails is told.
//
// Never: an import by anything but tests.
package handlertest
