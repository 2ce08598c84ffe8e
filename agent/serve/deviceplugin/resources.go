package deviceplugin

import (
	"context"
	"fmt"
	"sync"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// servedResource is the service of an Instance or a group, with a function that stops it.
type servedResource struct {
	*service
	stop func()
}

// advertise sends the list of a resource, and starts the resource if necessary. An
// Instance and a Configuration may have the same name. The one that is advertised
// later is refused until the other is gone.
func (s *Server) advertise(of slots.Resource, list []slots.Health) {
	current := s.resources[of.Name]
	if current != nil && current.resource != of {
		if _, known := s.refused[of]; !known {
			s.nameTaken(of)
		}
		s.refused[of] = list
		return
	}
	if current == nil {
		current = s.start(of)
		s.resources[of.Name] = current
	}
	current.setList(list)
}

// nameTaken reports a resource that cannot be offered because of its name.
func (s *Server) nameTaken(refused slots.Resource) {
	owner, other := "Configuration", "Instance"
	if refused.Group {
		owner, other = other, owner
	}
	message := fmt.Sprintf("Configuration %s has the same name, so %s is the %s's resource, not the %s's: rename the Configuration",
		refused.Name, v0.ResourceName(refused.Name), owner, other)
	s.warnOfInstance(s.devices.nameOf(refused.Name), "", reasonNameTaken, message)
}

// start starts the service of a resource.
func (s *Server) start(of slots.Resource) *servedResource {
	ctx, cancel := context.WithCancel(context.Background())
	r := &servedResource{service: newService(of, s)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.plugins.Serve(ctx, v0.ResourceName(of.Name), r.service)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	return r
}

// withdraw stops a resource, and offers the one that it kept from its name. A later
// resource of the same name has another socket and need not wait for it.
func (s *Server) withdraw(of slots.Resource) {
	current := s.resources[of.Name]
	if current == nil || current.resource != of {
		delete(s.refused, of)
		return
	}
	delete(s.resources, of.Name)
	s.running.Go(current.stop)
	other := slots.Resource{Name: of.Name, Group: !of.Group}
	if list, waiting := s.refused[other]; waiting {
		delete(s.refused, other)
		s.advertise(other, list)
	}
}

// stopResources sends the last lists and stops serving. Running containers are not
// affected.
func (s *Server) stopResources() {
	var all sync.WaitGroup
	for _, r := range s.resources {
		all.Go(func() {
			r.sendUnhealthy()
			r.stop()
		})
	}
	all.Wait()
}
