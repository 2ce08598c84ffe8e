package budget

// Estimates of what Go allocates, in bytes.
const (
	StringHeader  = 16
	listHeader    = 24
	mapHeader     = 48
	mapGroup      = 272 // eight entries, the minimum of a map
	bytesPerEntry = 56
)

// MapBytes estimates the memory of a map without its keys and values.
func MapBytes(entries int) int64 {
	if entries <= 8 {
		return mapHeader + mapGroup
	}
	return mapHeader + mapGroup + 2*bytesPerEntry*int64(entries)
}

// ListBytes estimates the memory of a list without its elements.
func ListBytes(elements int) int64 { return listHeader + 16*int64(elements) }
