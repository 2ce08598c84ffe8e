package bundle

// readme is the file README.md of every archive. docs/kubectl-akri.md says the same.
const readme = `# Report about an installation of Akri

Written by "kubectl akri report". Look through the files before you make them public: they contain
names and addresses of your cluster.

| file | content |
|---|---|
| errors.txt | what could not be read, and why; what did not fit |
| versions.txt | versions of all parts, and how they differ; versions.yaml is the same as data |
| tree.txt | Configurations with their devices, slots and objects, with conditions |
| events.txt | Events about Akri's objects and Pods, oldest first |
| nodes.yaml | nodes: system information, conditions, taints, allocatable devices of Akri |
| akri/NAMESPACE/ | Configurations and Instances; metadata and status of the objects made for them |
| system/ | workloads, Services and other objects in the namespace of Akri |
| cluster/ | CRDs without schemas, webhook registrations, admission policies and roles of Akri |
| agents/ | what the agent of each node knows: handlers, devices, slots, latest errors |
| logs/ | logs of Akri's Pods: the last lines, also of the container before a restart |

## What is left out

Never read: Secrets, the data of ConfigMaps, the specs of objects made from templates, and the logs
and termination messages of brokers.

Replaced by ` + Redacted + `:

- all values of discoveryProperties;
- values of properties (brokerProperties), fields, environment variables and arguments whose name
  contains password, passwd, passphrase, passcode, pwd, secret, token, credential, api key, access key,
  private key, signing key, shared key, account key, encryption key, client key, authorization, cookie,
  connection string or community, or ends with pass, psk or auth, and what is below such a field;
- only if the name ends like that of a reference, such as secretName, secretKeyRef or passwordFile, what
  looks like a name or a path stays;
- data of Secrets in the templates of Configurations;
- in all texts: private keys, JSON web tokens, bearer tokens, authorization headers, user information
  in URLs, assignments such as password=x, and fields of YAML and JSON;
- the CA and the path of webhooks;
- each of these values, if it has at least 6 characters, wherever else it occurs, also in base64.

Removed: managedFields, and the annotations in which kubectl apply and k3s keep the object.
`
