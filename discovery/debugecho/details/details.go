package details

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

const expected = "discoveryDetails of debugEcho: want YAML with a list of texts, such as \"descriptions: [foo0, foo1]\""

// Parse reads discoveryDetails into the texts to echo.
func Parse(details string) ([]string, error) {
	var fields struct {
		Descriptions *[]string `json:"descriptions"`
	}
	if err := yaml.Unmarshal([]byte(details), &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", expected, err)
	}
	if fields.Descriptions == nil {
		return nil, fmt.Errorf("%s: descriptions is missing", expected)
	}
	seen := map[string]bool{}
	for i, text := range *fields.Descriptions {
		switch {
		case text == "":
			return nil, fmt.Errorf("%s: descriptions[%d] is empty", expected, i)
		case seen[text]:
			return nil, fmt.Errorf("%s: descriptions[%d] repeats %q, and a device is told from others by its text", expected, i, text)
		}
		seen[text] = true
	}
	return *fields.Descriptions, nil
}

// Validate returns what is wrong with a Configuration's discoveryDetails; nil if
// the handler would take them.
func Validate(details string) error {
	_, err := Parse(details)
	return err
}
