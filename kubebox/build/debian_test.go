package build

import (
	"slices"
	"testing"
)

func TestSimulatedInstallsAreThePackagesThatAreMissing(t *testing.T) {
	const output = `NOTE: This is only a simulation!
Reading package lists...
Building dependency tree...
The following NEW packages will be installed:
  libnftables1 libnftnl11 nftables
0 upgraded, 3 newly installed, 0 to remove and 136 not upgraded.
Inst libnftnl11 (1.2.4-2 Debian:12.15/oldstable [amd64])
Inst libnftables1 (1.0.6-2+deb12u2 Debian:12.15/oldstable [amd64])
Inst libedit2 [3.1-1] (3.1-2 Debian:12.15/oldstable [amd64])
Inst nftables (1.0.6-2+deb12u2 Debian:12.15/oldstable [amd64])
Conf nftables (1.0.6-2+deb12u2 Debian:12.15/oldstable [amd64])
`
	want := []string{"libnftnl11", "libnftables1", "libedit2", "nftables"}
	if got := simulatedInstalls([]byte(output)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := simulatedInstalls([]byte("nftables is already the newest version.\n")); len(got) > 0 {
		t.Errorf("nothing is missing: got %q", got)
	}
}
