package v0

import (
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// MaxConfigurationNameLength is how long the name of a Configuration may be.
// The kubelet takes resource names of at most 63 characters after the slash,
// and an Instance's resource is CONFIGURATION-HASH with a hash of six.
const MaxConfigurationNameLength = 56

// Digest lengths in bytes. BLAKE2b's output depends on the length asked for, so
// the long one is not an extension of the short one.
const (
	shortDigest = 3
	longDigest  = 5
)

// InstanceName is the name of the Instance for a device: the Configuration's
// name, a dash, and six hexadecimal digits that depend on the device's id alone
// or, for a device that only one node can reach, on the id followed by the
// node's name. The rule is Akri's, so Instances keep their names when a cluster
// moves from there.
func InstanceName(configuration, deviceID, node string, shared bool) string {
	return configuration + "-" + deviceHash(deviceID, node, shared, shortDigest)
}

// LongInstanceName is the name to use when [InstanceName] belongs to another
// device id already: six digits collide with a probability of about 3 % among a
// thousand devices.
func LongInstanceName(configuration, deviceID, node string, shared bool) string {
	return configuration + "-" + deviceHash(deviceID, node, shared, longDigest)
}

func deviceHash(deviceID, node string, shared bool, size int) string {
	digest := newBlake2b(size)
	digest.Write([]byte(deviceID)) // a hash never fails to be written to
	if !shared {
		digest.Write([]byte(node))
	}
	return hex.EncodeToString(digest.Sum(nil))
}

func newBlake2b(size int) hash.Hash {
	digest, err := blake2b.New(size, nil)
	if err != nil {
		panic(err) // a size from 1 to 64 and no key: cannot happen
	}
	return digest
}

// ResourceName is the name under which the kubelet and the scheduler know an
// Instance or, given a Configuration's name, the whole group.
func ResourceName(name string) string { return Domain + "/" + name }

// CDIName is the Container Device Interface name of an Instance:
// akri.sh/CONFIGURATION=HASH.
func CDIName(configuration, instance string) string {
	return Domain + "/" + configuration + "=" + strings.TrimPrefix(instance, configuration+"-")
}

// SlotName is the key of a slot in an Instance's deviceUsage, and the id under
// which the kubelet knows it.
func SlotName(instance string, slot int) string {
	return instance + "-" + strconv.Itoa(slot)
}

// ParseSlotName is the inverse of [SlotName] for a slot of that Instance.
func ParseSlotName(instance, name string) (int, error) {
	digits, found := strings.CutPrefix(name, instance+"-")
	slot, err := strconv.Atoi(digits)
	if !found || err != nil || slot < 0 || digits != strconv.Itoa(slot) {
		return 0, fmt.Errorf("%q is not a slot of Instance %s: want %s-N", name, instance, instance)
	}
	return slot, nil
}
