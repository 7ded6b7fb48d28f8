backend "gcs" {
  bucket = "acme-tf-state"
  prefix = "network"
}
