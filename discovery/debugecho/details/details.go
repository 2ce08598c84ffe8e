package details

import (
	"errors"
	"fmt"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// Parse returns the descriptions in discoveryDetails. An error is a *[details.Fault].
func Parse(discoveryDetails string) ([]string, error) {
	var fields struct {
		Descriptions *[]string `json:"descriptions"`
	}
	err := details.Decode(discoveryDetails, &fields, func() error { return check(fields.Descriptions) })
	if err != nil {
		return nil, err
	}
	return *fields.Descriptions, nil
}

func check(descriptions *[]string) error {
	if descriptions == nil {
		return details.Faultf("descriptions", "missing").Hintf(`write a list of strings, such as "descriptions: [foo0, foo1]"`)
	}
	var mistakes []error
	seen := map[string]bool{}
	for i, description := range *descriptions {
		path := fmt.Sprintf("descriptions[%d]", i)
		switch {
		case description == "":
			mistakes = append(mistakes, details.Faultf(path, "empty").Hintf("it is the device's id: write a text"))
		case seen[description]:
			mistakes = append(mistakes, details.Faultf(path, "repeats %q", text.Truncate(description, details.MaxQuoted)).
				Hintf("use a different one for each device"))
		}
		seen[description] = true
	}
	return errors.Join(mistakes...)
}
