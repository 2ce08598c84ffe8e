// Package convert turns the fields by which Akri describes a broker into broker
// resources: templates that do what those fields promise. There is one way from
// template to object, and this is the door to it for Configurations written for
// Akri.
//
//	brokerSpec.brokerPodSpec   a Pod per node that sees the device, at most capacity of them
//	brokerSpec.brokerJobSpec   a Job per Instance and generation of the Configuration
//	instanceServiceSpec        a Service per Instance
//	configurationServiceSpec   a Service for all Instances
//
// Names, labels and selectors are Akri's. Three things differ, because there they
// are mistakes: a Pod is pinned to its node even if the broker has node affinity of
// its own; capacity bounds the number of Pods; Services also select the pods of
// Jobs.
//
// {{PLACEHOLDER}} keeps its meaning where Akri gave it one, as a key of resource
// requests and limits. Anywhere else in these fields braces are plain text.
package convert
