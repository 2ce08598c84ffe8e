package expr

// Names defines the variables that a text can use.
type Names interface {
	// Lookup returns the variable of that name, or nil if there is none. An error
	// means that the variable exists but cannot be used in this text.
	Lookup(name string) (*Variable, error)
	// Variables returns the names of the usable variables, sorted.
	Variables() []string
	// Properties returns the name of the variable that holds the properties of
	// the device; "" if there is none.
	Properties() string
}

// Variable is a bare word with a value.
type Variable struct {
	// ID identifies the variable in the Scope.
	ID   int
	Name string
	// Properties is set if the value is a map of device properties.
	Properties bool
	// NotInText is set if the value cannot be part of longer text. It says what
	// to write instead.
	NotInText string
}

// Scope returns the values of variables. Each belongs to one goroutine.
type Scope interface {
	// Value returns the value of a variable by its ID.
	Value(id int) any
}
