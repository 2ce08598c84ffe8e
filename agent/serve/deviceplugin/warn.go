package deviceplugin

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/serve/events"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Reasons of Events.
const (
	reasonNameTaken    = "ResourceNameTaken"
	reasonRefused      = "AllocationRefused"
	reasonConflict     = "SlotConflict"
	reasonRestored     = "SlotRestored"
	reasonDuplicate    = "AllocatedTwice"
	reasonUnwritable   = "ClaimsUnwritable"
	reasonHidden       = "HeldByInitContainer"
	reasonPathConflict = "PathConflict"
	reasonOmitted      = "PropertiesOmitted"
)

// warnOfInstance emits an Event of an Instance, and logs it.
func (s *Server) warnOfInstance(name types.NamespacedName, subject, reason, message string) {
	object := events.Object{Kind: "Instance", Namespace: name.Namespace, Name: name.Name}
	if instance := s.options.Instances.Get(name); instance != nil {
		object.UID = instance.UID
	}
	s.events.Warn(object, subject, reason, message)
}

// warnOfRefusal emits the refusal of a call. The kubelet shows the reason in the
// status of the Pod, which is often deleted soon. Calls for a group are one series. So are
// those without ids, which name one that is not in the last list.
func (s *Server) warnOfRefusal(of slots.Resource, ids []int, err error) {
	subject, what := "unlisted", v0.ResourceName(of.Name)
	if len(ids) > 0 {
		subject = of.ID(ids[0])
		what += " (" + subject + ")"
		if of.Group {
			subject = ""
		}
	}
	message := fmt.Sprintf("node %s did not give %s to a container: %v", s.options.NodeName, what, err)
	if !of.Group {
		s.warnOfInstance(s.devices.nameOf(of.Name), subject, reasonRefused, message)
	} else if object, found := s.configuration(of.Name); found { // even if an Instance has the same name
		s.events.Warn(object, subject, reasonRefused, message)
	}
}

// warnOfReport emits a report as an Event of the Instance. An ID of a group that no slot has is
// one of the Configuration.
func (s *Server) warnOfReport(r slots.Report) {
	reason, message := reasonConflict, r.Conflict+"; the slot stays unhealthy until deviceUsage is corrected or the container terminates"
	if r.Conflict == "" {
		reason = reasonRestored
		message = fmt.Sprintf("somebody removed the owner of slot %s from deviceUsage, but a container of node %s has the slot: "+
			"the agent writes the owner again; to free the device, delete the container's Pod", r.Slot, s.options.NodeName)
	}
	s.warnOfResource(r.Slot.Instance, r.Slot.String(), reason, message)
}

// warnOfDuplicate emits that more than one container has an ID.
func (s *Server) warnOfDuplicate(d observer.Duplicate) {
	message := fmt.Sprintf("the kubelet of node %s gave %s (%s) to more than one container, of %s; delete one of the Pods",
		s.options.NodeName, v0.ResourceName(d.Resource), d.ID, strings.Join(d.Pods, " and "))
	s.warnOfResource(d.Resource, d.ID, reasonDuplicate, message)
}

// warnOfHidden emits, once for each Pod, that only an init container got a slot.
func (s *Server) warnOfHidden(list []observer.Hidden) {
	known := s.hidden
	s.hidden = make(map[observer.Hidden]bool, len(list))
	for _, h := range list {
		if s.hidden[h] = true; known[h] {
			continue
		}
		message := fmt.Sprintf("an init container of Pod %s got %s: the Pod keeps it until it terminates, and a restart of the kubelet of "+
			"node %s may kill the Pod; request the device only in containers, or in a sidecar with restartPolicy: Always",
			h.Pod, v0.ResourceName(h.Resource), s.options.NodeName)
		s.warnOfResource(h.Resource, h.Pod, reasonHidden, message)
	}
}

// warnOfResource emits an Event of the Instance with a name, or of the Configuration if
// there is no such Instance.
func (s *Server) warnOfResource(name, subject, reason, message string) {
	if s.devices.known[name] == nil {
		if object, found := s.configuration(name); found {
			s.events.Warn(object, subject, reason, message)
			return
		}
	}
	s.warnOfInstance(s.devices.nameOf(name), subject, reason, message)
}

// configuration returns a Configuration with an Instance on this node, with its UID if any
// of these Instances has it: Events with and without it are different ones.
func (s *Server) configuration(name string) (object events.Object, found bool) {
	for _, k := range s.devices.known {
		if k.configuration != name || object.UID != "" {
			continue
		}
		object, found = events.Object{Kind: "Configuration", Namespace: k.name.Namespace, Name: name}, true
		if instance := s.options.Instances.Get(k.name); instance != nil {
			if owner := metav1.GetControllerOf(instance); owner != nil {
				object.UID = owner.UID
			}
		}
	}
	return object, found
}
