// Package convert translates Akri's old fields for brokers into broker resources:
// templates with the behavior that those fields promise. Every later step handles
// templates only.
//
//	brokerSpec.brokerPodSpec   a Pod per node that sees the device, at most capacity of them
//	brokerSpec.brokerJobSpec   a Job per Instance and generation of the Configuration
//	instanceServiceSpec        a Service per Instance
//	configurationServiceSpec   a Service for all Instances
//
// Names, labels and selectors are those of Akri. Three things differ, because they
// are bugs in Akri: a Pod is pinned to its node even if the broker has a node
// affinity of its own; capacity bounds the number of Pods; Services also select the
// pods of Jobs.
//
// {{PLACEHOLDER}} keeps its meaning as a key of resource requests and limits, as in
// Akri. Anywhere else in these fields braces are plain text.
//
// Always: the same fields give the same templates.
//
// Never: a change to the fields.
package convert
