package fact

// Advice is what to do about an error, in words that are the same for whoever reads it, such
// as those of a vendor. It follows the reason behind a semicolon, unless it begins with a
// comma or a colon. It is no part of a reason that wraps ErrNoKey: a fallback that opens the
// file shows that nothing is to be done.
type Advice string

// Advise returns the reason with advice beside it, unless there is none.
func Advise(reason error, advice string) error {
	if advice == "" {
		return reason
	}
	return With(reason, Advice(advice))
}

// These are about settings.
const (
	Repeated        Advice = "it is listed more than once, and a fallback must be another method"
	Layered         Advice = "the method was chosen by TF_ENCRYPTION, which is merged over the other settings"
	OtherThen       Advice = "correct that argument"
	CircleOfMethods Advice = "leave out the argument then of one"
	SameAlias       Advice = "give one of them another encrypted_metadata_alias"
	OpensOnly       Advice = "choose another to encrypt"
	NotExportable   Advice = "set that in its block, or choose the provider block that has it"
	NoDeriver       Advice = "choose another, such as pbkdf2"
	NoSecret        Advice = ": set the passphrase itself. If something was encrypted with this one before, keep it in a key provider of " +
		"its own, whose method is the fallback"
	NameBesideBlocks       Advice = "remove it, and set method if the default is not the right one"
	NoNames                Advice = "to use the default, remove name"
	TextBesideBlocks       Advice = ": write all encryption settings in one place"
	ValuesBesideBlocks     Advice = "remove this argument"
	SameName               Advice = `: give each a name of its own, such as name = "old"`
	EmptyMethod            Advice = "leave the argument out to use the default"
	NoMethodBesideFallback Advice = `, such as method = "method.aes_gcm.main"; to use the fallbacks of the provider's default block, leave out both`
)

// These are about files that are not what was expected.
const (
	Keyless Advice = ", nor of any other: it was encrypted with a key as it is, as static has it, or it is damaged; then restore an " +
		"intact copy"
	NotSelected     Advice = "if plaintext is meant, set the method or a fallback to that, and otherwise check which file is read"
	Enforced        Advice = ": check which file is read, or encrypt it"
	EmptyAnswer     Advice = "if a server sent it, check the address"
	EmptyInside     Advice = "restore an earlier version"
	BackendRecord   Advice = ": read it from there"
	PlanForState    Advice = ": name the file of the state; what is in a plan, statecrypt decrypt -plan shows"
	OtherLineage    Advice = "check where it is read from, or expected_lineage"
	LineageSpelling Advice = "spell it as the state does"
	OldSerial       Advice = ": either this is an old copy, and the newest one must be restored, or minimum_serial is too high, and must be " +
		"lowered"
	NewerFile        Advice = "install a newer release"
	Broken           Advice = "restore an intact copy"
	CutOff           Advice = "fetch it again, or restore a copy"
	OtherFile        Advice = "check which file is read"
	OtherOrBroken    Advice = "check which file is read, or restore an intact copy"
	PartOfFile       Advice = "give the whole file"
	WebPage          Advice = "check which file is read, or, if a server sent it, the address and the credentials"
	ServerError      Advice = "check the address and the credentials"
	AnswerOfGitHub   Advice = "read it with the source git, or fetch it with the header Accept: application/vnd.github.raw"
	AnswerOfGitLab   Advice = "read it with the source git, or from the address that ends in /raw"
	AnswerOfAPI      Advice = "read the state with the source remote, or download it from the address in hosted-state-download-url"
	LockFile         Advice = "give the file that was locked"
	KubernetesObject Advice = "for one of Kubeform or Crossplane, add an object block with its api_version, kind and name to the data " +
		"source; read a secret with the source kubernetes, or decode and decompress its data.tfstate"
	Printed     Advice = "give the state itself (terraform state pull)"
	ShownAsJSON Advice = "give the state (terraform state pull) or the plan itself"
	YAML        Advice = "give the file that Terraform or OpenTofu wrote"
	NullFile    Advice = ": the command for that is statecrypt key-provider age"
	NotText     Advice = `if terraform-backend-git encrypted it with a passphrase, select a method "terraform_backend_git" for it; else, ` +
		"decrypt or decompress it with the program that wrote it, such as gpg"
	LongWord Advice = `if it is the status.state of an object of Kubeform, select a method "kubeform" for it; if it is encrypted_data, ` +
		"the whole document that it was in is required"
	Conflict      Advice = "restore one of the two versions as a whole"
	TextBefore    Advice = "remove that text, or write the file again, with nothing else on standard output"
	TextBehind    Advice = "remove that, or fetch the file again"
	EncodedTwice  Advice = "decode it once, as jq -r . does"
	JSONInBase64  Advice = "decode it"
	GzipInBase64  Advice = "decode and decompress it, or read it with that source"
	ByteOrderMark Advice = "save it as UTF-8 without that mark"
	UTF16         Advice = "save it as UTF-8 without a byte order mark"
	Compressed    Advice = "decompress it"
	Archive       Advice = "extract what is in it"
	ZipArchive    Advice = ": if there is a state in it, as in an artifact of a pipeline, unzip it; a plan that is cut off must be " +
		"made again"
	LFSPointer   Advice = "run git lfs pull, and read the file itself"
	AnsibleVault Advice = "decrypt it with ansible-vault"
	GitCrypt     Advice = "run git-crypt unlock, and read the file in the working tree"
	OpenSSL      Advice = "decrypt it with openssl"
	PGP          Advice = "decrypt it with gpg"
	Transit      Advice = "decrypt it there (transit/decrypt), and decode the base64"
)
