package debugecho

import (
	"sigs.k8s.io/yaml"

	"akri.sh/akri/discovery"
)

const expected = "discoveryDetails of debugEcho: want YAML with a list of texts, such as \"descriptions: [foo0, foo1]\""

// parse reads discoveryDetails into the texts to echo.
func parse(details string) ([]string, error) {
	var fields struct {
		Descriptions *[]string `json:"descriptions"`
	}
	if err := yaml.Unmarshal([]byte(details), &fields); err != nil {
		return nil, discovery.Invalid("%s: %w", expected, err)
	}
	if fields.Descriptions == nil {
		return nil, discovery.Invalid("%s: descriptions is missing", expected)
	}
	seen := map[string]bool{}
	for i, text := range *fields.Descriptions {
		switch {
		case text == "":
			return nil, discovery.Invalid("%s: descriptions[%d] is empty", expected, i)
		case seen[text]:
			return nil, discovery.Invalid("%s: descriptions[%d] repeats %q, and a device is told from others by its text", expected, i, text)
		}
		seen[text] = true
	}
	return *fields.Descriptions, nil
}

var _ discovery.Validator = Handler{}

// ValidateDetails implements discovery.Validator.
func (Handler) ValidateDetails(details string) error {
	_, err := parse(details)
	return err
}
