package functions

// The reasons why a function of sprig, Helm or text/template is not in the table.
const (
	whySame   = "rendering must give the same result each time"
	whyKeys   = "keys and passwords are not generated in templates"
	whyData   = "a device property must not become a list or a map"
	whyValue  = "values do not change"
	whyOutput = "objects are neither HTML nor JavaScript"
)

// refused maps the names of such functions to the reason and the alternative.
var refused = map[string]string{
	"call": "there are no function values", "html": whyOutput, "js": whyOutput,
	"env": "templates see no environment", "expandenv": "templates see no environment",
	"now": whySame, "ago": whySame, "date": whySame, "dateInZone": whySame, "dateModify": whySame, "toDate": whySame,
	"htmlDate": whySame, "unixEpoch": whySame, "randAlpha": whySame, "randAlphaNum": whySame, "randNumeric": whySame,
	"randAscii": whySame, "randBytes": whySame, "randInt": whySame, "shuffle": whySame, "uuidv4": whySame,
	"genCA": whyKeys, "genPrivateKey": whyKeys, "genSelfSignedCert": whyKeys, "genSignedCert": whyKeys, "bcrypt": whyKeys,
	"htpasswd": whyKeys, "derivePassword": whyKeys, "encryptAES": whyKeys, "decryptAES": whyKeys,
	"getHostByName": "templates cannot reach the network", "lookup": "templates read nothing from the cluster",
	"fromJson": whyData, "mustFromJson": whyData, "fromJsonArray": whyData, "fromYaml": whyData, "fromYamlArray": whyData,
	"set": whyValue + "; use merge or dict", "unset": whyValue + "; use omit", "push": whyValue + "; use append",
	"tpl": "a string from values is never a template", "include": "there are no named templates",
	"toYaml": "make the expression the whole value, and it keeps its type",
	"osBase": "templates see no files; use base", "osDir": "templates see no files; use dir",
	"required": "a missing property is already an error",
	"println":  "use print, or a string",
	"tuple":    "use list",
}

// Refused returns the reason why a function of sprig, Helm or text/template does
// not exist here.
func Refused(name string) (reason string, found bool) {
	reason, found = refused[name]
	return reason, found
}
