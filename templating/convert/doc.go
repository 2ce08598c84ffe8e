// Package convert translates Akri's old fields for brokers into broker resources:
// templates with the behavior that those fields promise. Every later step handles
// templates only.
//
//	brokerSpec.brokerPodSpec   a Pod per node that sees the device, at most capacity of them
//	brokerSpec.brokerJobSpec   a Job per Instance, again when brokerJobSpec changes
//	instanceServiceSpec        a Service per Instance
//	configurationServiceSpec   a Service for all Instances
//
// Names, labels and selectors are those of Akri. Five things differ, because they
// are bugs in Akri: a Pod is pinned to its node even if the broker has a node
// affinity of its own; capacity bounds the number of Pods, and a node that joins does
// not move them; the name of a Job contains a digest of brokerJobSpec instead of the
// generation of the Configuration, so that other changes do not run it again; Services
// also select the Pods of Jobs, and those of instanceBrokerResources.
//
// {{PLACEHOLDER}} keeps its meaning as a key of resource requests and limits, as in
// Akri. Anywhere else in these fields braces are plain text.
//
// Always: the same fields give the same templates.
//
// Never: a change to the fields.
package convert
