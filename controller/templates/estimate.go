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
			bytes += bytesPerTemplate + estimateValue(resources[i].Object)
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

// estimateText returns the memory of a string in addition to its bytes, which
// belong to the Configuration.
func estimateText(text string) int {
	return bytesPerExpression * strings.Count(text, "{{")
}
