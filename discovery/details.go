package discovery

// Validator is a [Handler] that can tell wrong discoveryDetails before it runs.
// The admission webhook asks it when a Configuration is written.
type Validator interface {
	// ValidateDetails returns what is wrong with a Configuration's
	// discoveryDetails, best by [Invalid]; nil if Discover would take them. It
	// looks at the text only: no device, no file, no network.
	ValidateDetails(details string) error
}
