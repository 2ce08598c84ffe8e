package templating

// Reasons why a function that people know from elsewhere is not here.
const (
	whySame   = "rendering must give the same result each time"
	whyKeys   = "keys and passwords are not made in templates"
	whyData   = "a device property must not become a list or a map"
	whyValue  = "values do not change"
	whyOutput = "objects are neither HTML nor JavaScript"
)

// refusedFunctions are such names, with the reason and what to use instead.
var refusedFunctions = map[string]string{
	"call": "there are no function values", "html": whyOutput, "js": whyOutput,
	"env": "templates see no environment", "expandenv": "templates see no environment",
	"now": whySame, "ago": whySame, "date": whySame, "dateInZone": whySame, "dateModify": whySame, "toDate": whySame,
	"htmlDate": whySame, "unixEpoch": whySame, "randAlpha": whySame, "randAlphaNum": whySame, "randNumeric": whySame,
	"randAscii": whySame, "randBytes": whySame, "randInt": whySame, "shuffle": whySame, "uuidv4": whySame,
	"genCA": whyKeys, "genPrivateKey": whyKeys, "genSelfSignedCert": whyKeys, "genSignedCert": whyKeys, "bcrypt": whyKeys,
	"htpasswd": whyKeys, "derivePassword": whyKeys, "encryptAES": whyKeys, "decryptAES": whyKeys,
	"getHostByName": "templates reach no network", "lookup": "templates read nothing from the cluster",
	"fromJson": whyData, "mustFromJson": whyData, "fromJsonArray": whyData, "fromYaml": whyData, "fromYamlArray": whyData,
	"set": whyValue + "; use merge or dict", "unset": whyValue + "; use omit", "push": whyValue + "; use append",
	"tpl": "text that comes from values is never a template", "include": "there are no named templates",
	"toYaml": "make the expression the whole value, and it keeps its type",
	"osBase": "templates see no files; use base", "osDir": "templates see no files; use dir",
	"required": "a property that is not there is an error already",
	"println":  "use print, or a line of text",
	"tuple":    "use list",
}
