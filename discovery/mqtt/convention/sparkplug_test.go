package convention

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	sparkplugpb "akri.sh/akri/discovery/mqtt/sparkplug"
)

// metricOf returns a metric with a text, or with a number if the text is empty.
func metricOf(name, text string, number uint64) *sparkplugpb.Payload_Metric {
	m := &sparkplugpb.Payload_Metric{Name: &name, Value: &sparkplugpb.Payload_Metric_LongValue{LongValue: number}}
	if text != "" {
		m.Value = &sparkplugpb.Payload_Metric_StringValue{StringValue: text}
	}
	return m
}

// payloadOf encodes a payload with metrics, and with fields that are not used: seq, and one of
// 64 bits.
func payloadOf(metrics ...*sparkplugpb.Payload_Metric) string {
	payload, err := proto.Marshal(&sparkplugpb.Payload{Timestamp: proto.Uint64(1), Metrics: metrics})
	if err != nil {
		panic(err)
	}
	payload = protowire.AppendVarint(protowire.AppendTag(payload, 3, protowire.VarintType), 0)
	return string(protowire.AppendFixed64(protowire.AppendTag(payload, 99, protowire.Fixed64Type), 7))
}

func nodeBirth(sequence uint64) string {
	return payloadOf(metricOf("bdSeq", "", sequence), metricOf("Properties/Hardware Make", "Acme", 0),
		metricOf("Properties/Hardware Model", "Gate", 0), metricOf("Properties/FW", "2.0", 0))
}

const (
	nodeOnline  = "plant/gw online spBv1.0/plant/+/gw gw/Acme/Gate/2.0"
	nodeOffline = "plant/gw offline spBv1.0/plant/+/gw gw/Acme/Gate/2.0"
	pumpOnline  = "plant/gw/pump online spBv1.0/plant/+/gw/pump pump///"
	pumpOffline = "plant/gw/pump offline spBv1.0/plant/+/gw/pump pump///"
)

func TestSparkplug(t *testing.T) {
	const node, device = "spBv1.0/plant/NBIRTH/gw ", "spBv1.0/plant/DBIRTH/gw/pump "
	for name, tc := range map[string]struct {
		messages, want []string
		fault          string
	}{
		"births": {[]string{node + nodeBirth(3), device + payloadOf()}, []string{nodeOnline, pumpOnline}, ""},
		"death of the device": {
			[]string{node + nodeBirth(3), device + payloadOf(), "spBv1.0/plant/DDEATH/gw/pump "},
			[]string{nodeOnline, pumpOffline},
			"",
		},
		"death of the node": {
			[]string{node + nodeBirth(3), device + payloadOf(), "spBv1.0/plant/NDEATH/gw " + payloadOf(metricOf("bdSeq", "", 3))},
			[]string{nodeOffline, pumpOffline},
			"",
		},
		"death of an earlier session": {
			[]string{node + nodeBirth(4), device + payloadOf(), "spBv1.0/plant/NDEATH/gw " + payloadOf(metricOf("bdSeq", "", 3))},
			[]string{nodeOnline, pumpOnline},
			"",
		},
		"death without a sequence": {[]string{node + nodeBirth(4), "spBv1.0/plant/NDEATH/gw " + payloadOf()}, []string{nodeOffline}, ""},
		"born again": {
			[]string{node + nodeBirth(3), device + payloadOf(), node + nodeBirth(4)},
			[]string{nodeOnline, pumpOffline},
			"",
		},
		"certificates": {
			[]string{"$sparkplug/certificates/" + node + nodeBirth(3), "$sparkplug/certificates/" + device + payloadOf()},
			[]string{nodeOnline, pumpOnline},
			"",
		},
		"certificate after the death": {
			[]string{node + nodeBirth(3), "spBv1.0/plant/NDEATH/gw " + payloadOf(), "$sparkplug/certificates/" + node + nodeBirth(3)},
			[]string{nodeOffline},
			"",
		},
		"another session's death after a certificate": {
			[]string{"$sparkplug/certificates/" + node + nodeBirth(3), "spBv1.0/plant/NDEATH/gw " + payloadOf(metricOf("bdSeq", "", 4))},
			[]string{nodeOffline},
			"",
		},
		"certificate of a dead device": {
			[]string{
				node + nodeBirth(3),
				device + payloadOf(),
				"spBv1.0/plant/DDEATH/gw/pump ",
				"$sparkplug/certificates/" + device + payloadOf(metricOf("Properties/Hardware Make", "Old", 0)),
			},
			[]string{nodeOnline, pumpOffline},
			"",
		},
		"an OS version": {
			[]string{node + payloadOf(metricOf("Properties/FW", "2.0", 0), metricOf("Properties/OS Version", "7", 0)),
				device + payloadOf(metricOf("Properties/OS Version", "7", 0))},
			[]string{"plant/gw online spBv1.0/plant/+/gw gw///2.0", "plant/gw/pump online spBv1.0/plant/+/gw/pump pump///7"},
			"",
		},
		"too much text": {
			[]string{"spBv1.0/plant/DBIRTH/gw/" + strings.Repeat("x", maxIDBytes) + " " + payloadOf(
				metricOf("Properties/Hardware Make", strings.Repeat("a", maxValueBytes), 0),
				metricOf("Properties/Hardware Model", strings.Repeat("b", maxValueBytes), 0),
				metricOf("Properties/FW", strings.Repeat("c", maxValueBytes), 0))},
			nil,
			FaultTooLarge,
		},
		"a long id": {
			[]string{"spBv1.0/plant/NBIRTH/" + strings.Repeat("x", maxIDBytes) + " " + payloadOf(),
				"spBv1.0/plant/DBIRTH/gw/" + strings.Repeat("x", maxIDBytes+1) + " " + payloadOf()},
			nil,
			"",
		},
		"not protobuf":            {[]string{node + "{\"a\": 1}"}, nil, FaultMalformed},
		"a group without an end":  {[]string{node + "\x13"}, nil, FaultMalformed},
		"a length beyond the end": {[]string{node + "\x12\xff\xff\xff\xff\x0f"}, nil, FaultMalformed},
		"other topics": {
			[]string{
				"spBv1.0/STATE/host x",
				"spBv1.0/plant/NBIRTH x",
				"spBv1.0/plant/NBIRTH/gw/pump " + payloadOf(),
				"spBv1.0/plant/DBIRTH/gw " + payloadOf(),
			},
			nil,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, "convention: sparkplug")
			var effect Effect
			for _, message := range tc.messages {
				effect = apply(t, c, message, epoch)
			}
			if got := summary(c.Devices()); !slices.Equal(got, tc.want) || effect.Fault != tc.fault {
				t.Errorf("\n got %q, fault %q\nwant %q, fault %q", got, effect.Fault, tc.want, tc.fault)
			}
			if c.(Commander).Commands(epoch) != nil {
				t.Error("a command is sent although rebirth is not permitted")
			}
		})
	}
}

func TestRebirth(t *testing.T) {
	c := parse(t, "convention: sparkplug\nrebirth: true")
	commander := c.(Commander)
	apply(t, c, "spBv1.0/plant/NDATA/gw x", epoch)
	if due := commander.Due(); due.IsZero() || due.After(epoch) {
		t.Errorf("a command to the unknown node is due at %v, want at once", due)
	}
	commands := commander.Commands(epoch)
	if len(commands) != 1 || commands[0].Topic != "spBv1.0/plant/NCMD/gw" ||
		!strings.Contains(string(commands[0].Payload), "Node Control/Rebirth") {
		t.Fatalf("the commands are %v", commands)
	}
	var command sparkplugpb.Payload
	if err := proto.Unmarshal(commands[0].Payload, &command); err != nil || len(command.GetMetrics()) != 1 {
		t.Fatalf("the command is not a valid payload: %v, %v", &command, err)
	}
	m := command.GetMetrics()[0]
	if !m.GetBooleanValue() || m.GetDatatype() != datatypeBoolean || m.GetTimestamp() != uint64(epoch.UnixMilli()) {
		t.Errorf("the command has the metric %v", m)
	}
	apply(t, c, "spBv1.0/plant/NDATA/gw x", epoch.Add(time.Second))
	if commander.Commands(epoch.Add(time.Second)) != nil {
		t.Error("the command is repeated after a second")
	}
	apply(t, c, "spBv1.0/plant/NBIRTH/gw "+nodeBirth(1), epoch.Add(2*time.Second))
	now := epoch.Add(time.Minute)
	c.Begin(false, now)
	c.End()
	if len(commander.Commands(now)) != 0 || !commander.Due().IsZero() {
		t.Error("a command for a new list on the same connection")
	}
	c.Begin(true, now)
	c.End()
	if len(commander.Commands(now)) != 1 {
		t.Error("no command after a new connection")
	}
	if got := summary(c.Devices()); !slices.Equal(got, []string{nodeOffline}) {
		t.Errorf("a node that has not answered is %q", got)
	}
	if !commander.Due().IsZero() {
		t.Error("commands are due although all were sent: a busy poll")
	}
	now = now.Add(rebirthWait - time.Second)
	c.Begin(true, now)
	c.End()
	if len(commander.Commands(now)) != 1 {
		t.Error("no command after another new connection, although the first one may be lost")
	}
	apply(t, c, "spBv1.0/plant/NBIRTH/gw "+nodeBirth(1), now)
	if got := summary(c.Devices()); !slices.Equal(got, []string{nodeOnline}) {
		t.Errorf("a node that has answered is %q", got)
	}
}

// TestWithoutRebirth checks that nothing is doubted that nobody may ask.
func TestWithoutRebirth(t *testing.T) {
	c := parse(t, "convention: sparkplug")
	apply(t, c, "spBv1.0/plant/NBIRTH/gw "+nodeBirth(1), epoch)
	c.Begin(true, epoch)
	c.End()
	if got := summary(c.Devices()); !slices.Equal(got, []string{nodeOnline}) {
		t.Errorf("after a new connection, the node is %q", got)
	}
}

// TestRebirthOfCertificates checks that an edge node is asked that a broker has retained.
func TestRebirthOfCertificates(t *testing.T) {
	c := parse(t, "convention: sparkplug\nrebirth: true")
	apply(t, c, "$sparkplug/certificates/spBv1.0/plant/NBIRTH/gw "+nodeBirth(1), epoch)
	if commands := c.(Commander).Commands(epoch); len(commands) != 1 || commands[0].Topic != "spBv1.0/plant/NCMD/gw" {
		t.Errorf("the commands are %v", commands)
	}
	if got := summary(c.Devices()); !slices.Equal(got, []string{nodeOffline}) {
		t.Errorf("a node that has not answered is %q", got)
	}
}

// TestSequenceAsInt checks that edge nodes may write bdSeq as a number of 32 bits, too.
func TestSequenceAsInt(t *testing.T) {
	name := "bdSeq"
	sequence := &sparkplugpb.Payload_Metric{Name: &name, Value: &sparkplugpb.Payload_Metric_IntValue{IntValue: 7}}
	if got, ok := parseBirth([]byte(payloadOf(sequence))); !ok || got.sequence != (birthSequence{true, 7}) {
		t.Errorf("got %+v, %v", got, ok)
	}
}
