package v0

import (
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// Digest lengths in bytes. The output of BLAKE2b depends on the requested length, so
// the short digest is not a prefix of the long one.
const (
	shortDigest = 3
	longDigest  = 5
)

// InstanceName returns the name of the Instance for a device: the Configuration's
// name, a dash and six hexadecimal digits. The digits are a digest of the device ID,
// followed by the node's name if the device is not shared. The original Akri uses the
// same names, so Instances keep their names when a cluster migrates from it.
func InstanceName(configuration, deviceID, node string, shared bool) string {
	return configuration + "-" + deviceHash(deviceID, node, shared, shortDigest)
}

// LongInstanceName returns the name to use if [InstanceName] is taken by another device
// ID. Among a thousand devices, six digits collide with a probability of about 3 %. The
// name has ten digits of another digest, or as many as fit if the Configuration's name
// is long: six at least.
func LongInstanceName(configuration, deviceID, node string, shared bool) string {
	return configuration + "-" + deviceHash(deviceID, node, shared, longDigest)[:longDigits(configuration)]
}

// longDigits returns the number of digits in a [LongInstanceName].
func longDigits(configuration string) int {
	room := MaxInstanceNameLength - len(configuration) - 1
	return min(2*longDigest, max(room, 2*shortDigest))
}

// ParseInstanceName returns the name of the Configuration whose devices may have a name
// as their [InstanceName] or [LongInstanceName]; false if none may.
func ParseInstanceName(name string) (configuration string, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", false
	}
	configuration, digits := name[:dash], name[dash+1:]
	if strings.Trim(digits, "0123456789abcdef") != "" || len(digits) != 2*shortDigest && len(digits) != longDigits(configuration) {
		return "", false
	}
	return configuration, true
}

func deviceHash(deviceID, node string, shared bool, size int) string {
	digest := newBlake2b(size)
	digest.Write([]byte(deviceID)) // never fails
	if !shared {
		digest.Write([]byte(node))
	}
	return hex.EncodeToString(digest.Sum(nil))
}

func newBlake2b(size int) hash.Hash {
	digest, err := blake2b.New(size, nil)
	if err != nil {
		panic(err) // cannot happen: the size is from 1 to 64 and there is no key
	}
	return digest
}

// ResourceName returns the extended resource of an Instance or, given the name of a
// Configuration, of all its Instances.
func ResourceName(name string) string { return Domain + "/" + name }

// CommonResource returns the extended resource that Configurations of these names may
// both use, as that of the group or of an Instance; "" if there is none. Nodes cannot
// distinguish them, even if they are in different namespaces.
func CommonResource(a, b string) string {
	ofA, _ := ParseInstanceName(a)
	ofB, _ := ParseInstanceName(b)
	switch {
	case a == b, ofA == b:
		return ResourceName(a)
	case ofB == a:
		return ResourceName(b)
	}
	return ""
}

// CDIName returns the Container Device Interface name of an Instance:
// akri.sh/CONFIGURATION=HASH.
func CDIName(configuration, instance string) string {
	return Domain + "/" + configuration + "=" + strings.TrimPrefix(instance, configuration+"-")
}

// SlotName returns the key of a slot in an Instance's deviceUsage, which is also the
// kubelet's device ID.
func SlotName(instance string, slot int) string {
	return instance + "-" + strconv.Itoa(slot)
}

// ParseSlotName returns the number of a slot of an Instance. It is the inverse of
// [SlotName].
func ParseSlotName(instance, name string) (int, error) {
	digits, found := strings.CutPrefix(name, instance+"-")
	slot, err := strconv.Atoi(digits)
	if !found || err != nil || slot < 0 || digits != strconv.Itoa(slot) {
		return 0, fmt.Errorf("%q is not a slot of Instance %s: want %s-N", name, instance, instance)
	}
	return slot, nil
}
