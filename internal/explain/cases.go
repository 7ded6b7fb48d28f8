package explain

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"

// ofCase is what everybody is told in a case, behind the reason; "" for nothing.
func ofCase(c fact.Case) string {
	return map[fact.Case]string{
		fact.Repeated:          "; it is listed more than once, and a fallback must be another method",
		fact.Layered:           "; the method was chosen by TF_ENCRYPTION, which is merged over the other settings",
		fact.OtherThen:         "; correct that argument",
		fact.CircleOfMethods:   "; leave out the argument then of one",
		fact.CircleOfKeys:      "; let one of them have a key of its own",
		fact.SameAlias:         "; give one of them another encrypted_metadata_alias",
		fact.OpensOnly:         "; choose another to encrypt",
		fact.NotExportable:     "; set that in its block, or choose the provider block that has it",
		fact.NoDeriver:         "; choose another, such as pbkdf2",
		fact.EnforcedPlaintext: "; remove one of the two",
		fact.NoSecret: ": set the passphrase itself. If something was encrypted with this one before, keep it in a key provider of its own, " +
			"whose method is the fallback",

		fact.Keyless: ", nor of any other: it was encrypted with a key as it is, as static has it, or it is damaged; then " +
			"restore an intact copy",
		fact.NotSelected:   "; if plaintext is meant, set the method or a fallback to that, and otherwise check which file is read",
		fact.Enforced:      ": check which file is read, or encrypt it",
		fact.EmptyAnswer:   "; if a server sent it, check the address",
		fact.EmptyInside:   "; restore an earlier version",
		fact.BackendRecord: ": read it from there",
		fact.NewerFile:     "; install a newer release",
		fact.Broken:        "; restore an intact copy",
		fact.CutOff:        "; fetch it again, or restore a copy",
		fact.OtherFile:     "; check which file is read",
		fact.OtherOrBroken: "; check which file is read, or restore an intact copy",
		fact.PartOfFile:    "; give the whole file",
		fact.WebPage:       "; check which file is read, or, if a server sent it, the address and the credentials",
		fact.ServerError:   "; check the address and the credentials",
		fact.AnswerOfGitHub: "; read it with the source git, or fetch it with the header " +
			"Accept: application/vnd.github.raw",
		fact.AnswerOfGitLab: "; read it with the source git, or from the address that ends in /raw",
		fact.AnswerOfAPI: "; read the state with the source remote, or download it from the address in " +
			"hosted-state-download-url",
		fact.LockFile: "; give the file that was locked",
		fact.KubernetesObject: "; for one of Kubeform or Crossplane, add an object block with its api_version, kind and name to the data " +
			"source; " +
			"read a secret with the source kubernetes, or decode and decompress its data.tfstate",
		fact.Printed:     "; give the state itself (terraform state pull)",
		fact.ShownAsJSON: "; give the state (terraform state pull) or the plan itself",
		fact.YAML:        "; give the file that Terraform or OpenTofu wrote",
		fact.NullFile:    ": the command for that is statecrypt key-provider age",
		fact.NotText: `; if terraform-backend-git encrypted it with a passphrase, select a method "terraform_backend_git" for it; else, ` +
			"decrypt or " +
			"decompress it with the program that wrote it, such as gpg",
		fact.LongWord: `; if it is the status.state of an object of Kubeform, select a method "kubeform" for it; if it is encrypted_data, the ` +
			"whole document that it was in is required",
		fact.Conflict:      "; restore one of the two versions as a whole",
		fact.TextBefore:    "; remove that text, or write the file again, with nothing else on standard output",
		fact.TextBehind:    "; remove that, or fetch the file again",
		fact.EncodedTwice:  "; decode it once, as jq -r . does",
		fact.JSONInBase64:  "; decode it",
		fact.GzipInBase64:  "; decode and decompress it, or read it with that source",
		fact.ByteOrderMark: "; save it as UTF-8 without that mark",
		fact.UTF16:         "; save it as UTF-8 without a byte order mark",
		fact.Compressed:    "; decompress it",
		fact.Archive:       "; extract what is in it",
		fact.ZipArchive: ": if there is a state in it, as in an artifact of a pipeline, unzip it; a plan that is cut off must " +
			"be made again",
		fact.LFSPointer:   "; run git lfs pull, and read the file itself",
		fact.AnsibleVault: "; decrypt it with ansible-vault",
		fact.GitCrypt:     "; run git-crypt unlock, and read the file in the working tree",
		fact.OpenSSL:      "; decrypt it with openssl",
		fact.PGP:          "; decrypt it with gpg",
		fact.Transit:      "; decrypt it there (transit/decrypt), and decode the base64",

		fact.NameBesideBlocks:   "; remove it, and set method if the default is not the right one",
		fact.NoNames:            "; to use the default, remove name",
		fact.TextBesideBlocks:   ": write all encryption settings in one place",
		fact.ValuesBesideBlocks: "; remove this argument",
		fact.SameName:           `: give each a name of its own, such as name = "old"`,
		fact.EmptyMethod:        "; leave the argument out to use the default",
		fact.NoMethodBesideFallback: `, such as method = "method.aes_gcm.main"; to use the fallbacks of the ` +
			"provider's default block, leave out both",
		fact.PlanForState:    ": name the file of the state; what is in a plan, statecrypt decrypt -plan shows",
		fact.OtherLineage:    "; check where it is read from, or expected_lineage",
		fact.LineageSpelling: "; spell it as the state does",
		fact.OldSerial: ": either this is an old copy, and the newest one must be restored, or minimum_serial is too high, " +
			"and must be lowered",
	}[c]
}
