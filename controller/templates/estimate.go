package templates

import (
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// What compiled templates take, in bytes, rounded up from measurements.
const (
	bytesPerTemplate   = 2048
	bytesPerValue      = 128
	bytesPerExpression = 256
)

// estimate returns about how many bytes of memory the compiled templates of a
// Configuration take. Legacy fields become at most five small templates.
func estimate(configuration *v0.Configuration) int {
	bytes := 5 * bytesPerTemplate
	for _, resources := range [][]v0.BrokerResource{
		configuration.Spec.InstanceBrokerResources, configuration.Spec.ConfigurationBrokerResources,
	} {
		for i := range resources {
			content, err := resources[i].Content()
			if err == nil {
				bytes += bytesPerTemplate + estimateValue(content)
			}
		}
	}
	return bytes
}

func estimateValue(value any) int {
	bytes := bytesPerValue
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			bytes += estimateText(key) + estimateValue(element)
		}
	case []any:
		for _, element := range value {
			bytes += estimateValue(element)
		}
	case string:
		bytes += estimateText(value)
	}
	return bytes
}

// estimateText returns the memory of a string, rounded up as the allocator does. Its bytes do
// not belong to the Configuration, whose templates are packed.
func estimateText(text string) int {
	return len(text)*5/4 + bytesPerExpression*strings.Count(text, "{{")
}
