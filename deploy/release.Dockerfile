# The image of a release: the binary that is in the archives too, with its licences. GoReleaser builds it, in a
# directory that holds the binary of each platform; nothing is run and nothing is downloaded. The Dockerfile at
# the top of the tree builds one from source.
FROM scratch
ARG TARGETPLATFORM
COPY --chmod=0755 ${TARGETPLATFORM}/retrylab /retrylab
COPY --chmod=0644 LICENSE dist/files/third-party-licences.txt /licences/
# A number, since there is no /etc/passwd that could turn a name into one.
USER 65532:65532
# The lab keeps its databases in a temporary directory. This makes it, as this user's.
WORKDIR /tmp
EXPOSE 8080
ENTRYPOINT ["/retrylab"]
