package details

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

const expected = "discoveryDetails of debugEcho: want YAML with a list of strings, such as \"descriptions: [foo0, foo1]\""

// Parse returns the descriptions in discoveryDetails.
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
			return nil, fmt.Errorf("%s: descriptions[%d] repeats %q: use a different one for each device", expected, i, text)
		}
		seen[text] = true
	}
	return *fields.Descriptions, nil
}

// Validate returns an error if the handler would refuse a Configuration's
// discoveryDetails.
func Validate(details string) error {
	_, err := Parse(details)
	return err
}
