gcloud kms keys add-iam-policy-binding tofu-state \
  --project example-project --location europe-west1 --keyring tofu \
  --member serviceAccount:state-reader@example-project.iam.gserviceaccount.com \
  --role roles/cloudkms.cryptoKeyDecrypter
