package fact

import "slices"

// Case is what is so, by a name, if nothing else is to be known of it.
type Case string

// Is reports whether a case is beside an error, or beside what it wraps.
func Is(err error, c Case) bool { return slices.Contains(In(err), Fact(c)) }

// These are about settings.
const (
	NoCredentials          Case = "no credentials"       // none were sent to a server that may want some
	OnlyEnvironment        Case = "only environment"     // names a command
	NotSettings            Case = "not settings"         // but a text of something else
	NoIdentity             Case = "no identity"          // there are recipients, and nothing that opens files
	Repeated               Case = "repeated"             // a method is listed more than once
	Layered                Case = "layered"              // TF_ENCRYPTION chose the method, beside settings elsewhere
	OtherThen              Case = "other then"           // what a method decrypted is not for the method that its then names
	CircleOfMethods        Case = "circle of methods"    // by their then
	CircleOfKeys           Case = "circle of keys"       // of key providers
	SameAlias              Case = "same alias"           // of two key providers
	OpensOnly              Case = "opens only"           // a key provider or a method that cannot encrypt
	NotExportable          Case = "not exportable"       // a key provider
	NoDeriver              Case = "no deriver"           // a kind of key provider that derives no keys
	NoSecret               Case = "no secret"            // but a passphrase that everybody may know
	EnforcedPlaintext      Case = "enforced plaintext"   // a method reads it, and enforced forbids that
	NameBesideBlocks       Case = "name beside blocks"   // a name is for text, and the settings are in blocks
	NoNames                Case = "no names"             // of remote_state_data_source
	TextBesideBlocks       Case = "text beside blocks"   // settings are in both
	ValuesBesideBlocks     Case = "values beside blocks" // for the variables of a text
	SameName               Case = "same name"            // of two entries
	EmptyMethod            Case = "empty method"         // in place of none
	NoMethodBesideFallback Case = "no method beside fallback"
)

// These are about files that are not what was expected.
const (
	Keyless          Case = "keyless"                 // it has no metadata at all
	NotSelected      Case = "not selected"            // plaintext, by no method
	Enforced         Case = "enforced"                // plaintext, which enforced forbids
	EmptyAnswer      Case = "empty answer"            // if a server gave the file
	EmptyInside      Case = "empty inside"            // what was decrypted
	BackendRecord    Case = "backend record"          // in place of the state that is in the backend
	PlanForState     Case = "plan"                    // in place of a state
	TooLarge         Case = "too large"               // for max_size
	OtherLineage     Case = "other lineage"           // than the one that was pinned
	LineageSpelling  Case = "spelling of the lineage" // that was pinned
	OldSerial        Case = "old serial"              // below the one that was pinned
	NewerFile        Case = "newer file"              // than this release
	Broken           Case = "broken"                  // edited or cut off
	CutOff           Case = "cut off"                 // on the way, or when it was written
	OtherFile        Case = "other file"              // of another program or for another use
	OtherOrBroken    Case = "other or broken"         // nobody can tell
	PartOfFile       Case = "part of a file"          // that is required as a whole
	WebPage          Case = "web page"                // or XML
	ServerError      Case = "server error"            // in JSON
	AnswerOfGitHub   Case = "answer of GitHub"        // about a file
	AnswerOfGitLab   Case = "answer of GitLab"        // about a file
	AnswerOfAPI      Case = "answer of an API"        // such as that of HCP Terraform
	LockFile         Case = "lock file"               // of a state
	KubernetesObject Case = "Kubernetes object"       // in YAML or JSON
	Printed          Case = "printed"                 // for people, from a state
	ShownAsJSON      Case = "shown as JSON"           // by terraform show
	YAML             Case = "YAML"
	NullFile         Case = "null"
	NotText          Case = "not text"
	LongWord         Case = "long word"
	Conflict         Case = "conflict" // of git
	TextBefore       Case = "text before"
	TextBehind       Case = "text behind"
	EncodedTwice     Case = "encoded twice"
	JSONInBase64     Case = "JSON in base64"
	GzipInBase64     Case = "gzip in base64"
	ByteOrderMark    Case = "byte order mark"
	UTF16            Case = "UTF-16"
	Compressed       Case = "compressed"
	Archive          Case = "archive"
	ZipArchive       Case = "zip archive" // and no plan
	LFSPointer       Case = "LFS pointer"
	AnsibleVault     Case = "Ansible Vault"
	GitCrypt         Case = "git-crypt"
	OpenSSL          Case = "openssl"
	PGP              Case = "PGP"
	Transit          Case = "transit"
)
