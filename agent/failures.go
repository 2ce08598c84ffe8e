package agent

import (
	"cmp"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
)

const (
	maxMessageBytes = v0.MaxFailureMessageLength // the schema limits the characters
	maxHandlerBytes = v0.MaxFailureHandlerLength
)

// failures collects this node's failures of one Configuration for its status.
// Messages about the same handler are joined.
type failures struct {
	node string
	list []v0.DiscoveryFailure
}

func (f *failures) add(handler, message string) {
	handler, message = text.Truncate(text.OneLine(handler), maxHandlerBytes), text.OneLine(message)
	for i := range f.list {
		if f.list[i].Handler == handler {
			f.list[i].Message = text.Truncate(f.list[i].Message+"; and "+message, maxMessageBytes)
			return
		}
	}
	f.list = append(f.list, v0.DiscoveryFailure{Node: f.node, Handler: handler, Message: text.Truncate(message, maxMessageBytes)})
}

// sorted returns the failures in the order in which the agent writes them, without
// those that would be too many for the API server.
func (f *failures) sorted() []v0.DiscoveryFailure {
	slices.SortFunc(f.list, func(a, b v0.DiscoveryFailure) int { return cmp.Compare(a.Handler, b.Handler) })
	return f.list[:min(len(f.list), v0.MaxNodeFailures)]
}
