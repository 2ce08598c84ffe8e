// Package peers runs other people's programs in tests: devices, brokers and servers that
// our discovery handlers must understand.
//
// The programs come from Debian and PyPI packages, which are unpacked below bin/peers in
// the repository and kept there. Nothing is installed on the machine.
//
// Where a package cannot be fetched, a test is skipped; with AKRI_E2E_REQUIRED=1, as in
// CI, it fails.
//
// Never: an import by anything but tests.
package peers
