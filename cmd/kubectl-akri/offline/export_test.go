package offline

// ConvertFile is convertFile.
var ConvertFile = convertFile
